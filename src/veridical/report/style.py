"""Colours and lettering of the figures.

Figures are drawn in the light theme's colours, one colour per role and no colour twice; on the page each is replaced
by a variable of the style sheet, so that figures follow the theme.  On paper they stay as they are.
"""

from __future__ import annotations

from typing import Any

#: Role -> (light, dark).  The names are the style sheet's variables.
COLOURS = {
    "ink": ("#1d2430", "#e9ebf0"),
    "quiet": ("#596273", "#a6aebc"),
    "rule": ("#dfe3ea", "#2f3642"),
    "frame": ("#aeb6c2", "#4d5665"),
    "surface": ("#ffffff", "#181c24"),
    "band": ("#f2b84b", "#d9982b"),
    "right": ("#7f9ccb", "#5b7fb8"),
    "wrong": ("#d9775f", "#d0705a"),
    "series-0": ("#4f5b6f", "#b4bccb"),
    "series-1": ("#c4591b", "#f0935a"),
    "series-2": ("#14805e", "#4cc59c"),
    "series-3": ("#3457d5", "#8aa2ff"),
    "series-4": ("#a3307a", "#e583c2"),
    "series-5": ("#876a00", "#d8b83f"),
    "series-6": ("#0b7a99", "#55bfdc"),
    "series-7": ("#6b48b8", "#b79af5"),
    "level-0": ("#e4ecf8", "#1f2b42"),
    "level-1": ("#c2d4f0", "#283f69"),
    "level-2": ("#98b6e5", "#345894"),
    "level-3": ("#6b92d6", "#4b79c0"),
    "level-4": ("#426bbd", "#76a1df"),
    "level-5": ("#28478c", "#b7d1f6"),
}
#: Colours of the page around them.
PAGE_COLOURS = {
    "page": ("#f6f7f9", "#101319"),
    "accent": ("#3457d5", "#8aa2ff"),
    "on-accent": ("#ffffff", "#101319"),
    "tint": ("#eef2fb", "#212838"),
    "good": ("#14805e", "#4cc59c"),
    "better": ("#3457d5", "#8aa2ff"),
    "bad": ("#b8432b", "#ef8e75"),
    "unknown": ("#596273", "#a6aebc"),
}
N_SERIES, N_LEVELS = 8, 6
#: The usual methods always have the same colour; the method that the report is about is the fourth.
_USUAL = {"mean": 0, "tde": 1, "atde": 2, "hv": 4}

RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.2,
    "axes.titlesize": 9.2,
    "axes.labelcolor": COLOURS["quiet"][0],
    "axes.edgecolor": COLOURS["frame"][0],
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": COLOURS["rule"][0],
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.facecolor": "none",
    "svg.hashsalt": "veridical",
    "text.color": COLOURS["ink"][0],
    "text.parse_math": False,  # a dollar in a name is a dollar
    "xtick.color": COLOURS["frame"][0],
    "xtick.labelcolor": COLOURS["quiet"][0],
    "ytick.color": COLOURS["frame"][0],
    "ytick.labelcolor": COLOURS["quiet"][0],
}


def colour(role: str) -> str:
    """The colour that a role is drawn in."""
    return COLOURS[role][0]


def series_roles(methods: list[str], chosen: str | None) -> dict[str, str]:
    """Method -> role of its colour."""
    roles = dict(_USUAL)
    if chosen is not None and chosen not in roles:
        roles[chosen] = 3
    spare = [k for k in range(N_SERIES) if k not in roles.values()] or [N_SERIES - 1]
    others = [method for method in methods if method not in roles]
    roles |= {method: spare[i % len(spare)] for i, method in enumerate(others)}
    return {method: f"series-{k}" for method, k in roles.items()}


def level_role(share: float) -> str:
    """The role of a count, given its share of the largest count."""
    return f"level-{sum(share > bound for bound in LEVEL_BOUNDS)}"


#: Shares of the largest count at which the colour changes.
LEVEL_BOUNDS = (0.05, 0.1, 0.2, 0.4, 0.7)


def theme_css() -> str:
    """The colours as variables: light, dark by choice, dark by the system's preference, and light on paper."""
    light, dark = ([f"--{role}:{pair[k]}" for role, pair in (COLOURS | PAGE_COLOURS).items()] for k in (0, 1))
    return "\n".join(
        [
            f":root{{color-scheme:light;{';'.join(light)}}}",
            f":root[data-theme=dark]{{color-scheme:dark;{';'.join(dark)}}}",
            "@media (prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;"
            + ";".join(dark)
            + "}}",
            f"@media print{{:root{{{';'.join(f'{entry}!important' for entry in light)}}}}}",
        ]
    )
