"""What the kit lays over a Django project: settings that read environment variables, caching layers, probes."""
