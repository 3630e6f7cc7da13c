# SPDX-License-Identifier: BSD-2-Clause
"""A drawing of slowdown by size, simulated and published, as a self-contained SVG file."""

COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8a5fb0")    # of the algorithms, in turn
PANEL, HEIGHT, LEFT, TOP, BELOW = 380, 250, 44, 40, 44


def text(x, y, words, anchor="middle", size=11, more=""):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{words}</text>'


def curve(points, colour, published):
    dash = ' stroke-dasharray="4 3" opacity="0.75"' if published else ""
    out = [f'<polyline fill="none" stroke="{colour}" stroke-width="1.6"{dash} points="'
           + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>']
    out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" stroke="{colour}" fill="{"white" if published else colour}"/>'
            for x, y in points]
    return out


def panel(left, title, sizes, lines):
    """lines: (colour, published, a value or None for each size)."""
    top = 1.1 * max(v for _, _, values in lines for v in values if v is not None)
    step = next(s for s in (0.5, 1, 2, 5, 10) if top / s <= 7)

    def x(i):
        return left + LEFT + (i + 0.5) * (PANEL - LEFT - 10) / len(sizes)

    def y(v):
        return TOP + HEIGHT * (1 - v / top)

    out = [text(left + LEFT, TOP - 8, title, "start", 12)]
    v = 0.0
    while v <= top:
        out.append(f'<line x1="{left + LEFT}" x2="{left + PANEL - 10}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#ddd"/>')
        out.append(text(left + LEFT - 6, y(v) + 4, f"{v:g}", "end"))
        v += step
    out += [text(x(i), TOP + HEIGHT + 16, s) for i, s in enumerate(sizes)]
    for colour, published, values in lines:
        out += curve([(x(i), y(v)) for i, v in enumerate(values) if v is not None], colour, published)
    return out


def slowdowns(path, title, names, points):
    """points: (label, percentile, a value or None for each name, the published value of each)."""
    shares = sorted({p[1] for p in points})
    width = PANEL * len(shares)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + BELOW}" '
           f'viewBox="0 0 {width} {TOP + HEIGHT + BELOW}" font-family="sans-serif">',
           '<rect width="100%" height="100%" fill="white"/>']
    for k, pct in enumerate(shares):
        mine = [p for p in points if p[1] == pct]
        lines = []
        for i, _ in enumerate(names):
            lines.append((COLOURS[i], True, [p[3][i] for p in mine]))
            lines.append((COLOURS[i], False, [p[2][i] for p in mine]))
        out += panel(k * PANEL, f"{title}: slowdown, {pct}th percentile, by size", [p[0] for p in mine], lines)
    at = LEFT
    for i, name in enumerate(names):
        out.append(text(at, TOP + HEIGHT + 36, f"● {name}", "start", 12, f' fill="{COLOURS[i]}"'))
        at += 28 + 9 * len(name)
    out.append(text(at + 10, TOP + HEIGHT + 36, "filled, solid: here; hollow, dashed: published", "start", 12))
    out.append("</svg>")
    path.write_text("\n".join(out) + "\n")
