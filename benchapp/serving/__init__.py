"""What the kit lays over a Django project: settings that read environment variables, and caching layers."""
