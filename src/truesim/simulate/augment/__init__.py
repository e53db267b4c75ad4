"""Networks at any point of the physics: ports, blueprints, networks and heads."""
