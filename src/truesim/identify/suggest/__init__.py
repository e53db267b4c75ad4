"""Where a network is needed: which port, from which inputs."""

from truesim.identify.suggest.api import Curve, Suggestion, Suggestions, suggest

__all__ = ["Curve", "Suggestion", "Suggestions", "suggest"]
