"""The page of something that runs: it asks for snapshots and draws them."""

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs


def live_page(title: str) -> str:
    """The page as HTML text; it works without a network."""
    loader = jinja2.PackageLoader("truesim.report")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals["source"] = lambda name: Markup(loader.get_source(environment, name)[0])
    return environment.get_template("live.html").render(title=title, plotly=Markup(get_plotlyjs()))
