"""The server: sign-in, sessions, users, origins, limits."""
