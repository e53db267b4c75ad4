"""MuJoCo's constraint model: contacts, limits, friction and equalities as soft constraints on the acceleration."""
