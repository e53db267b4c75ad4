"""Suggestion of networks: which port, and which inputs."""

from truesim.identification.suggestion.api import Curve, Suggestion, Suggestions, suggest
from truesim.identification.suggestion.kinds import DisturbanceKind

__all__ = ["Curve", "DisturbanceKind", "Suggestion", "Suggestions", "suggest"]
