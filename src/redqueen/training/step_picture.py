"""A step's timeline for people: a line of text, and a picture in SVG."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from redqueen.phases.timeline import Timeline

BLOCKS = " ▁▂▃▄▅▆▇█"
PROPOSALS, ATTEMPTS = "#0072b2", "#e69f00"
BANDS = {
    "update": "#b8dfd3",
    "verify": "#efcfdf",
    "grade": "#e3b6cc",
    "evolve": "#d9d2f2",
    "measure": "#e6e1c3",
    "evaluate": "#cfe6f5",
}
OTHER_BAND = "#dddddd"
SHOWN = 0.003
"""The least share of a picture's width that a band is drawn from."""
LEFT, TOP, WIDE, HIGH, BELOW = 64, 34, 720, 150, 46
"""Of a panel, in pixels: what is left of its plot and above it, the plot, and what is below it."""


def text_plot(timeline: Timeline, most: float) -> str:
    """Rows in flight, a character for each part of the step; a full block is `most`."""
    return "".join(BLOCKS[math.ceil(rows / most * (len(BLOCKS) - 1))] if rows else " " for rows in timeline.rows)


def picture(timelines: Mapping[str, Timeline]) -> str:
    """A panel for each, on the same scales."""
    seconds = max(timeline.seconds for timeline in timelines.values())
    most = max(1.0, *(rows for timeline in timelines.values() for rows in timeline.rows))
    bands = dict.fromkeys(
        phase for timeline in timelines.values() for phase, start, end in timeline.others if _shown(start, end, seconds)
    )
    panel = TOP + HIGH + BELOW
    width, height = LEFT + WIDE + 24, len(timelines) * panel + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12" fill="#222222">',
        "<title>Where a step's seconds go</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (name, timeline) in enumerate(timelines.items()):
        parts += [
            f'<g transform="translate({LEFT} {place * panel + TOP})">',
            *_panel(name, timeline, seconds, most),
            "</g>",
        ]
    named = {"proposals": PROPOSALS, "attempts": ATTEMPTS, **{phase: BANDS.get(phase, OTHER_BAND) for phase in bands}}
    parts += [f'<g transform="translate({LEFT} {height - 24})">', *_legend(named), "</g>", "</svg>"]
    return "\n".join(parts) + "\n"


def _panel(name: str, timeline: Timeline, seconds: float, most: float) -> Iterator[str]:
    across, up = WIDE / seconds, HIGH / most
    yield f'<text y="-10" font-weight="bold">{escape(name)}: a step of {timeline.seconds:.2f} s</text>'
    for phase, start, end in timeline.others:
        if _shown(start, end, seconds):
            yield (
                f'<rect x="{start * across:.1f}" width="{(end - start) * across:.1f}" height="{HIGH}" '
                f'fill="{BANDS.get(phase, OTHER_BAND)}"><title>{escape(phase)}, {end - start:.2f} s</title></rect>'
            )
    for value in _ticks(most):
        yield f'<path d="M0 {HIGH - value * up:.1f}h{WIDE}" stroke="#999999" stroke-opacity="0.3"/>'
        yield f'<text x="-8" y="{HIGH - value * up + 4:.1f}" text-anchor="end">{value:g}</text>'
    width = timeline.seconds / len(timeline.rows) * across
    for rows, colour in ((timeline.rows, ATTEMPTS), (timeline.proposals, PROPOSALS)):
        steps = "".join(f"V{HIGH - each * up:.1f}h{width:.3f}" for each in rows)
        yield f'<path d="M0 {HIGH}{steps}V{HIGH}Z" fill="{colour}"/>'
    yield f'<path d="M0 0V{HIGH}H{WIDE}" fill="none" stroke="#444444"/>'
    for value in _ticks(seconds):
        yield f'<path d="M{value * across:.1f} {HIGH}v5" stroke="#444444"/>'
        yield f'<text x="{value * across:.1f}" y="{HIGH + 18}" text-anchor="middle">{value:g}</text>'
    yield f'<text x="{WIDE}" y="{HIGH + 34}" text-anchor="end">seconds</text>'
    yield f'<text transform="translate(-48 {HIGH / 2:g}) rotate(-90)" text-anchor="middle">rows in flight</text>'


def _legend(named: Mapping[str, str]) -> Iterator[str]:
    left = 0
    for name, colour in named.items():
        yield f'<rect x="{left}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{left + 17}" y="11">{escape(name)}</text>'
        left += 32 + 7 * len(name)


def _shown(start: float, end: float, seconds: float) -> bool:
    return end - start >= SHOWN * seconds


def _ticks(most: float) -> Sequence[float]:
    """A few round numbers from 0 up to this one."""
    rough = most / 6
    unit = 10.0 ** math.floor(math.log10(rough))
    width = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough)
    return [round(number * width, 10) for number in range(int(most / width + 1e-9) + 1)]
