"""A cube thrown on a table: contact parameters from real tosses, beside MuJoCo's."""
