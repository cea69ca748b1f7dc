"""Runs the job of a head and draws its curves."""

import torch

from . import report, stream
from .loop import Loop


def train(s, job_class) -> None:
    torch.set_num_threads(s.threads)
    job = job_class(s)
    loop = Loop(s, job)
    loop.run()
    report.plot(loop.csv, s.work / f"{job.title}-loss.png", {"loss": "training loss"}, job.title, "loss")
    kind = stream.kinds(s.data)[0]
    levels = {f"{kind}_{i + 1}": f"{kind}, level {i + 1}" for i in range(job.levels)}
    report.plot(loop.csv, s.work / f"{job.title}-agreement.png", levels, f"{job.title}: best token as the target's",
                "share of held-out positions")
