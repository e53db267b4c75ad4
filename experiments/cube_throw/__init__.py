"""A cube thrown under rigid contact, matched by the compliant law."""
