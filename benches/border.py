#!/usr/bin/env python3
"""border.py FILE.json .. [-o docs/border.svg]: where the border lies between what is a verdict and what is not.

Reads what `holdup lab prove --random N --seed S -j` wrote. Prints how often the intended class was the verdict, by
the gain of the fixed variant, and draws each run: the measured gain to the right, the predicted gain upwards.

The runs of docs/lab.md, in parts of less than a minute:

    for seed in $(seq 1 12); do holdup lab prove --random 17 --seed $seed -j -o r-$seed.json; done
"""
import argparse
import json
import math

MATTERS = 1 / 0.85
STEPS = [1.02, 1.05, 1.10, MATTERS, 1.25, 1.40, 1.70, math.inf]
WIDTH, HEIGHT, LEFT, BELOW, ROOM = 720, 470, 60, 50, 20
LEAST, MOST = 0.85, 5.0
KINDS = [("intended class", "#1b7f4b"), ("healthy", "#3566c4"), ("another class", "#c0392b"), ("open", "#888888")]


def kind(row):
    said = row["verdict"]["class"]
    if said == row["makes"] or said != "healthy" and said in row["right_classes"]:
        return 0
    return 1 if said == "healthy" else 3 if said == "not-enough-evidence" else 2


def along(value, least, most, start, length):
    value = min(max(value, least), most)
    return start + length * math.log(value / least) / math.log(most / least)


def x(value):
    return along(value, LEAST, MOST, LEFT, WIDTH - LEFT - ROOM)


def y(value):
    return HEIGHT - BELOW - along(value, 1.0, MOST, 0, HEIGHT - BELOW - 70)


def dot(row):
    predicted = row["verdict"]["predicted"]
    made = kind(row) != 1 and predicted
    low, high = row["gained_range"]
    colour = KINDS[kind(row)][1]
    at = y(predicted["times"] if made else 1.0) if made else y(1.0) + 8 + (sum(str(row["settings"]).encode()) % 20)
    title = f'{row["name"]}: gained {row["gained"]:.2f}, {row["verdict"]["class"]}'
    return (f'<g><title>{title}</title><line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{at:.1f}" y2="{at:.1f}" '
            f'stroke="{colour}" stroke-opacity="0.25"/><circle cx="{x(row["gained"]):.1f}" cy="{at:.1f}" r="3.2" '
            f'fill="{colour}" fill-opacity="0.75"/></g>')


def text(at_x, at_y, words, anchor="middle"):
    return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}">{words}</text>'


def svg(rows):
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 20}" font-family="sans-serif" '
             f'font-size="12"><rect width="100%" height="100%" fill="white"/>']
    base = HEIGHT - BELOW
    for value in (1, 1.25, 1.5, 2, 3, 4, 5):
        parts.append(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="70" y2="{base}" stroke="#eee"/>')
        parts.append(text(x(value), base + 46, f"{value}x"))
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - ROOM}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#eee"/>')
        parts.append(text(LEFT - 6, y(value) + 4, f"{value}x", "end"))
    parts.append(f'<line x1="{x(1):.1f}" y1="{y(1):.1f}" x2="{x(MOST):.1f}" y2="{y(MOST):.1f}" stroke="#bbb"/>')
    parts.append(f'<line x1="{x(MATTERS):.1f}" x2="{x(MATTERS):.1f}" y1="60" y2="{base + 30}" stroke="#c77700" '
                 f'stroke-dasharray="5 4"/>')
    parts.append(text(x(MATTERS) + 5, 58, "15 % of the wanted CPU time: 1.18x", "start"))
    parts += [dot(row) for row in sorted(rows, key=lambda row: -kind(row))]
    at = LEFT
    for i, (name, colour) in enumerate(KINDS):
        number = sum(kind(row) == i for row in rows)
        if number:
            parts.append(f'<circle cx="{at + 5}" cy="26" r="5" fill="{colour}"/>')
            parts.append(text(at + 15, 30, f"{name}: {number}", "start"))
            at += 150
    parts.append(text(WIDTH / 2, HEIGHT + 14, "gain of the fixed variant, untraced"))
    parts.append(f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">predicted gain '
                 f'(below the line: healthy)</text></svg>')
    return "\n".join(parts) + "\n"


def table(rows):
    print("| gain of the fixed variant | runs | verdict: intended class | healthy | another class | open |\n|---|--:|--:|--:|--:|--:|")
    low = 0
    for high in STEPS:
        within = [row for row in rows if low <= row["gained"] < high]
        numbers = [sum(kind(row) == i for row in within) for i in range(4)]
        name = f"below {high:.2f}x" if low == 0 else f"from {low:.2f}x" if high == math.inf else f"{low:.2f} to {high:.2f}x"
        print(f"| {name} | {len(within)} | " + " | ".join(str(n) for n in numbers) + " |")
        low = high


def main():
    options = argparse.ArgumentParser()
    options.add_argument("files", nargs="+")
    options.add_argument("-o", "--output")
    options = options.parse_args()
    rows = [row for name in options.files for row in json.load(open(name))["rows"]]
    table(rows)
    wrong = [row for row in rows if row["right"] is False]
    print(f"\n{len(rows)} runs, {len(wrong)} verdicts wrong by the gains of the fixed variants:")
    for row in sorted(wrong, key=lambda row: row["name"]):
        low, high = row["gained_range"]
        print(f'  {row["name"]}: gained {row["gained"]:.2f} ({low:.2f} to {high:.2f}), {row["verdict"]["class"]} '
              f'{row["verdict"]["confidence"]:.2f}', {k: v for k, v in row["settings"].items() if k != "duration"})
    both = [row for row in rows if row["verdict"]["predicted"] and kind(row) == 0]
    off = sorted(abs(row["verdict"]["predicted"]["times"] / row["gained"] - 1) for row in both)
    if off:
        print(f"predicted gains are off by {100 * off[len(off) // 2]:.0f} % in the median, "
              f"{sum(o > 0.15 for o in off)} of {len(off)} by more than 15 %")
    if options.output:
        open(options.output, "w").write(svg(rows))


main()
