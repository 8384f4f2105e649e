"""Carriers of deliveries outward: function workers, HTTP targets, mail."""
