"""matplotlib's SVG made fit to stand inside an HTML page.

Several pictures share one page, so identifiers must differ; the page's policy allows no style
attributes, so they become plain ones; and what is black or grey takes the colour of the page's
text, so that it can be read on a dark page too.
"""

import re
from xml.etree import ElementTree

from ahpatron_cli.output.plots.drawing import BLACK, GRID, INK, PALE

_OPACITY_OF_INK = {BLACK: "1", INK: "1", PALE: "0.75", GRID: "0.2"}
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_PIXELS_PER_POINT = 4 / 3


def inline_svg(picture: bytes, *, prefix: str, description: str) -> str:
    """An `svg` element whose identifiers all begin with `prefix`; its text is made of paths."""
    root = ElementTree.fromstring(picture)  # our own output: no entities to fear
    _drop(root, {"metadata", "style"})
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        attributes |= _style(attributes.pop("style", ""))
        element.attrib.clear()
        element.attrib.update(_unique(_in_ink(attributes), prefix))
        element.text = element.tail = None
    width = root.attrib["width"].removesuffix("pt")
    root.attrib.pop("height")
    root.attrib |= {
        "width": f"{float(width) * _PIXELS_PER_POINT:.0f}",
        "fill": "currentColor",  # black is the default, so matplotlib leaves it out
        "stroke-linejoin": "round",  # what the style element said
        "stroke-linecap": "butt",
        "role": "img",
        "aria-label": description,
    }
    return ElementTree.tostring(root, encoding="unicode")


def _drop(root: ElementTree.Element, tags: set[str]) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in tags:
                parent.remove(child)


def _local(name: str) -> str:
    """Without its namespace: HTML knows the elements of SVG, and `href` has replaced XLink."""
    return name.rpartition("}")[2]


def _style(declarations: str) -> dict[str, str]:
    """`fill: none; stroke: #333` as attributes."""
    pairs = (declaration.split(":", 1) for declaration in declarations.split(";") if declaration)
    return {name.strip(): value.strip() for name, value in pairs}


def _in_ink(attributes: dict[str, str]) -> dict[str, str]:
    for paint in ("fill", "stroke"):
        opacity = _OPACITY_OF_INK.get(attributes.get(paint, ""))
        if opacity is not None:
            attributes[paint] = "currentColor"
            attributes.setdefault(f"{paint}-opacity", opacity)
    return attributes


def _unique(attributes: dict[str, str], prefix: str) -> dict[str, str]:
    if "id" in attributes:
        attributes["id"] = prefix + attributes["id"]
    if "href" in attributes:
        attributes["href"] = "#" + prefix + attributes["href"].removeprefix("#")
    if "clip-path" in attributes:
        attributes["clip-path"] = _REFERENCE.sub(rf"url(#{prefix}\1)", attributes["clip-path"])
    if "d" in attributes:
        attributes["d"] = " ".join(attributes["d"].split())
    return attributes
