"""What profiles and negotiations are made of: files, orders, requests, offers, plots."""
