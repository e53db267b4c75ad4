"""The picture of how a robot's end position depends on its masses."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from truesim.core.typing import Float

AXES = ("x", "y", "z")
COLOURS = ("#d1495b", "#2a9d8f", "#30638e")


def sensitivity_figure(
    path: Float[np.ndarray, "samples 3"],
    skeleton: Float[np.ndarray, "poses points 3"],
    names: tuple[str, ...],
    derivative: Float[np.ndarray, "3 bodies"],
) -> go.Figure:
    """The path of the tip, the arm along it, and the derivative of its end in every mass.

    Args:
        path: Position of the tip over time [m].
        skeleton: Joints and tip at a few times [m].
        names: Names of the bodies.
        derivative: End position of the tip by mass [mm/kg].
    """
    figure = make_subplots(
        1,
        2,
        specs=[[{"type": "scene"}, {"type": "xy"}]],
        column_widths=[0.55, 0.45],
        horizontal_spacing=0.12,
        subplot_titles=("Path of the tip", "Change of the end position per kilogram"),
    )
    for k, points in enumerate(skeleton):
        shade = 0.25 + 0.75 * k / max(len(skeleton) - 1, 1)
        figure.add_trace(
            _line(points, f"rgba(60,60,70,{shade:.2f})", 7, "the arm, darker later", k == len(skeleton) - 1), 1, 1
        )
    figure.add_trace(_line(path, "#edae49", 5, "path of the tip", True), 1, 1)
    for axis, colour, row in zip(AXES, COLOURS, derivative, strict=True):
        figure.add_trace(go.Bar(x=names, y=row, name=f"end {axis}", marker_color=colour), 1, 2)
    figure.update_layout(
        template="plotly_white",
        font={"family": "sans-serif", "size": 14},
        margin={"l": 20, "r": 20, "t": 60, "b": 40},
        scene={
            "aspectmode": "data",
            "xaxis_title": "x [m]",
            "yaxis_title": "y [m]",
            "zaxis_title": "z [m]",
            "camera": {"eye": {"x": 1.6, "y": -1.3, "z": 0.4}},
        },
        legend={"orientation": "h", "y": -0.05},
        barmode="group",
    )
    figure.update_yaxes(title_text="mm / kg", row=1, col=2)
    return figure


def _line(points: np.ndarray, colour: str, width: int, name: str, legend: bool) -> go.Scatter3d:
    x, y, z = points.T
    return go.Scatter3d(
        x=x, y=y, z=z, mode="lines+markers" if width > 5 else "lines", name=name, showlegend=legend,
        line={"color": colour, "width": width}, marker={"size": 4, "color": colour},
    )  # fmt: skip
