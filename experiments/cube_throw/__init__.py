"""A cube thrown under rigid contact, matched by compliant contact."""
