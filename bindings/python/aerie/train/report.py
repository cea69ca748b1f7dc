"""What a run tells the world: one log line now and then, a bar on a terminal, a CSV and a PNG of the curve."""

import csv
import sys
import time
from pathlib import Path


class Progress:
    """A bar when stderr is a terminal; otherwise nothing."""

    def __init__(self, title: str):
        self.title, self.live = title, sys.stderr.isatty()

    def show(self, share: float, text: str) -> None:
        if self.live:
            filled = int(share * 30)
            sys.stderr.write(f"\r{self.title} [{'#' * filled}{'.' * (30 - filled)}] {share:4.0%} {text}\033[K")
            sys.stderr.flush()

    def close(self) -> None:
        if self.live:
            sys.stderr.write("\n")


def log(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)


class Curve:
    """Rows appended to a CSV; a restart continues the file, dropping rows after the checkpoint."""

    def __init__(self, path: Path, columns: list[str], resume_step: int = 0):
        self.path, self.columns = path, columns
        kept = []
        if resume_step and path.exists():
            with path.open() as file:
                kept = [row for row in csv.DictReader(file) if int(row["step"]) <= resume_step]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="")
            writer.writeheader()
            writer.writerows({k: row.get(k, "") for k in columns} for row in kept)

    def add(self, **values) -> None:
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, self.columns, restval="").writerow(
                {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in values.items()})


def plot(csv_path: Path, png_path: Path, series: dict[str, str], title: str, y_label: str = "loss (nats)") -> None:
    """Draws columns (name -> legend) of a curve against the tokens seen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with csv_path.open() as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(figsize=(7, 4))
    for column, label in series.items():
        points = [(float(r["tokens"]) / 1e6, float(r[column])) for r in rows if r.get(column)]
        if points:
            x, y = zip(*points)
            axes.plot(x, y, label=label, marker="o" if len(points) < 30 else None, markersize=3, linewidth=1)
    axes.set_xlabel("tokens seen (millions)")
    axes.set_ylabel(y_label)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(png_path, dpi=120)
    plt.close(figure)
