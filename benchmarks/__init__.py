"""How fast Muster is, measured from outside (a real server, real clients) and from inside."""
