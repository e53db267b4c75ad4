"""How controls become forces on joints."""
