"""Plots beside the tables."""

from pathlib import Path

from rows import NAMES, by_depth, mean, taus


def draw(results: dict, folder: Path, calibration: dict | None) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 4))
    for d in results["drafters"]:
        points = [(i, share) for i, share in enumerate(by_depth(results, 0, d, "shared", 7)) if share is not None]
        if points:
            ax.plot(*zip(*points), marker="o", label=NAMES.get(d, d))
    ax.set_xlabel("depth n of the drafted node's parent")
    ax.set_ylabel("n-α")
    ax.set_title("Acceptance by depth, chains of 7, temperature 0")
    ax.legend(fontsize=7)
    fig.tight_layout()
    fig.savefig(folder / "n-alpha.png", dpi=110)

    fig, ax = plt.subplots(figsize=(8, 4))
    drafters = [d for d in results["drafters"] if mean(taus(results, 0, d, "chain"))]
    width = 0.8 / len(results["trees"])
    for i, tree in enumerate(results["trees"]):
        values = [mean(taus(results, 0, d, tree)) or 0 for d in drafters]
        ax.bar([x + i * width for x in range(len(drafters))], values, width, label=tree)
    ax.set_xticks([x + 0.4 - width / 2 for x in range(len(drafters))], [NAMES.get(d, d) for d in drafters], fontsize=7)
    ax.axhline(1, color="grey", linewidth=0.8)
    ax.set_ylabel("τ")
    ax.set_title("Tokens per cycle, temperature 0")
    ax.legend(fontsize=7)
    fig.tight_layout()
    fig.savefig(folder / "tau.png", dpi=110)

    if calibration:
        fig, ax = plt.subplots(figsize=(5, 4))
        for temperature, points in calibration.items():
            ax.plot([p[0] for p in points], [p[1] for p in points], marker="o", label=f"temperature {temperature}")
        ax.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        ax.set_xlabel("confidence of the EAGLE head (top ten)")
        ax.set_ylabel("share that came true")
        ax.set_title("Calibration, first drafted token")
        ax.legend(fontsize=7)
        fig.tight_layout()
        fig.savefig(folder / "calibration.png", dpi=110)
