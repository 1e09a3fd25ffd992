"""Settings laid over another Django project where the kit serves it; they go to production with it."""
