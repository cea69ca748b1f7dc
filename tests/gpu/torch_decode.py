#!/usr/bin/env python3
"""Plain decode of Llama-3.1-8B's shape in PyTorch, for the table beside ours: bf16, batch 1, random weights, compiled and,
unless `how` says otherwise, in a CUDA graph. Prints one JSON object. Status 77: no PyTorch, or no device.

    torch_decode.py [--context N] [--layers N] [--device cuda|cpu --hidden N --ffn N --vocab N]
"""
import argparse
import json
import statistics
import sys
import time


def arguments():
    p = argparse.ArgumentParser()
    for name, value in (("context", 512), ("layers", 32), ("hidden", 4096), ("ffn", 14336), ("vocab", 128256), ("heads", 32),
                        ("kv_heads", 8), ("samples", 41)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--device", default="cuda")
    return p.parse_args()


def main():
    a = arguments()
    try:
        import torch
        import torch._dynamo
        import torch.nn.functional as F
    except ImportError:
        print("skipped: no PyTorch", file=sys.stderr)
        return 77
    if a.device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch sees no CUDA device", file=sys.stderr)
        return 77
    torch.manual_seed(0)
    dim = a.hidden // a.heads

    def weight(n, k):
        return torch.randn(n, k, dtype=torch.bfloat16, device=a.device) * 0.02

    class Layer:
        def __init__(self):
            self.qkv = weight((a.heads + 2 * a.kv_heads) * dim, a.hidden)
            self.o = weight(a.hidden, a.hidden)
            self.gate_up = weight(2 * a.ffn, a.hidden)
            self.down = weight(a.hidden, a.ffn)
            shape = (1, a.kv_heads, a.context, dim)
            self.k = torch.zeros(shape, dtype=torch.bfloat16, device=a.device)
            self.v = torch.zeros(shape, dtype=torch.bfloat16, device=a.device)

    layers = [Layer() for _ in range(a.layers)]
    head = weight(a.vocab, a.hidden)
    embedding = weight(a.vocab, a.hidden)
    frequency = 1.0 / 500000.0 ** (torch.arange(0, dim, 2, device=a.device) / dim)

    def rotate(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)

    def norm(x):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5)).to(torch.bfloat16)

    def step(token, position):
        x = F.embedding(token, embedding)
        angle = position.float() * frequency
        cos, sin = angle.cos().to(torch.bfloat16), angle.sin().to(torch.bfloat16)
        seen = (torch.arange(a.context, device=a.device) <= position).view(1, 1, 1, a.context)
        for w in layers:
            q, k, v = F.linear(norm(x), w.qkv).split([a.heads * dim, a.kv_heads * dim, a.kv_heads * dim], dim=-1)
            q = rotate(q.view(1, 1, a.heads, dim), cos, sin).transpose(1, 2)
            w.k.index_copy_(2, position, rotate(k.view(1, 1, a.kv_heads, dim), cos, sin).transpose(1, 2))
            w.v.index_copy_(2, position, v.view(1, 1, a.kv_heads, dim).transpose(1, 2))
            y = F.scaled_dot_product_attention(q, w.k, w.v, attn_mask=seen, enable_gqa=True)
            x = x + F.linear(y.transpose(1, 2).reshape(1, 1, -1), w.o)
            gate, up = F.linear(norm(x), w.gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, w.down)
        return F.linear(norm(x), head).argmax(-1)

    cuda = a.device == "cuda"
    # Where they lie does not change: unless told so, PyTorch makes no graph of a step that writes to tensors it was given,
    # or copies what it was given into the graph's own memory before each run.
    if cuda:
        for w in layers:
            for tensor in vars(w).values():
                torch._dynamo.mark_static_address(tensor)
        for tensor in (head, embedding, frequency):
            torch._dynamo.mark_static_address(tensor)
    run = torch.compile(step, mode="reduce-overhead", fullgraph=True) if cuda else step
    token = torch.zeros(1, 1, dtype=torch.long, device=a.device)
    position = torch.tensor([a.context - 1], device=a.device)
    us = []
    with torch.no_grad():
        for i in range(10 + a.samples):
            start = time.perf_counter()
            run(token, position)
            if cuda:
                torch.cuda.synchronize()
            if i >= 10:
                us.append((time.perf_counter() - start) * 1e6)
    how = "eager"
    if cuda:
        skips = torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]
        how = "compiled, CUDA graph" if skips == 0 else "compiled, no CUDA graph"
    print(json.dumps({"decode_us": statistics.median(us), "how": how, "torch": torch.__version__, "layers": a.layers,
                      "context": a.context}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
