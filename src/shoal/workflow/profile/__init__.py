"""Profiles and negotiations: files, orders, requests, offers and plots."""
