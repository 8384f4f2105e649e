"""The services: each a table of AWS's operations over rows. Siblings never import each other."""
