"""Balls on a table: three frames in, positions ten frames ahead, with physics inside the network."""
