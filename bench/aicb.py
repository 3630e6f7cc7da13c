#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A training step of a model as AICB text, which `verbena sim` reads (kind = graph).

Sizes of the models are as published; what follows from them is in docs/ai-workloads.md: the operations of each layer, the
bytes of each collective, and how long a GPU takes.

    bench/aicb.py --model llama-7b --ranks 64 --tp 8 > step.txt
    bench/aicb.py --shipped .         writes the files of share/scenarios and bench/scenarios anew
"""
import argparse
import os
import sys

# hidden, inner size of the MLP, layers, vocabulary, heads, heads of keys and values, experts, of which a token takes
MODELS = {
    "llama-7b": (4096, 11008, 32, 32000, 32, 32, 0, 0),
    "llama-70b": (8192, 28672, 80, 32000, 64, 8, 0, 0),
    "mixtral-8x7b": (4096, 14336, 32, 32000, 32, 8, 8, 2),
}
BF16 = 2

# What comes with Verbena: the file, and how it is made.
SHIPPED = {
    "share/scenarios/train-64.txt": "--model llama-7b --ranks 64 --tp 8 --layers 1 --no-embedding",
    "share/scenarios/train-16.txt": "--model llama-7b --ranks 16 --tp 8 --layers 1 --no-embedding",
    "share/scenarios/train-moe.txt": "--model mixtral-8x7b --ranks 32 --tp 4 --ep 8 --layers 1 --no-embedding --seq 1024",
    "bench/scenarios/train-7b-64.txt": "--model llama-7b --ranks 64 --tp 8",
    "bench/scenarios/train-7b-1024.txt": "--model llama-7b --ranks 1024 --tp 8 --pp 4",
}


def arguments(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=MODELS, default="llama-7b")
    p.add_argument("--ranks", type=int, default=64)
    p.add_argument("--tp", type=int, default=8, help="ranks of a tensor group")
    p.add_argument("--pp", type=int, default=1, help="stages of the pipeline")
    p.add_argument("--ep", type=int, default=1, help="ranks among which experts are divided")
    p.add_argument("--seq", type=int, default=2048, help="tokens of a sequence")
    p.add_argument("--batch", type=int, default=1, help="sequences of each data parallel rank in a step")
    p.add_argument("--layers", type=int, help="in place of the model's; a step of some layers is the model's but for its length")
    p.add_argument("--no-embedding", action="store_true", help="leave out the embedding")
    p.add_argument("--tflops", type=float, default=989.0, help="of a GPU, 10^12 operations a second")
    p.add_argument("--mfu", type=float, default=0.5, help="the share of them that it does")
    p.add_argument("--shipped", metavar="FOLDER", help="write the files that come with Verbena below the tree's folder")
    a = p.parse_args(words)
    layers = a.layers or MODELS[a.model][2]
    if a.ranks % (a.tp * a.pp):
        p.error("--ranks %d: allowed are multiples of tp x pp, %d" % (a.ranks, a.tp * a.pp))
    if a.ranks // (a.tp * a.pp) % a.ep:
        p.error("--ep %d: does not divide the %d ranks of a data parallel group" % (a.ep, a.ranks // (a.tp * a.pp)))
    if layers % a.pp:
        p.error("--pp %d: does not divide %d layers" % (a.pp, layers))
    if a.ep > 1 and not MODELS[a.model][6]:
        p.error("--ep %d: %s has no experts" % (a.ep, a.model))
    return a


class Step:
    """The rows of one stage, which all ranks of it have."""

    def __init__(self, a):
        self.a = a
        self.h, self.f, layers, self.v, heads, kv, self.experts, self.top = MODELS[a.model]
        self.layers = (a.layers or layers) // a.pp
        self.tokens = a.seq * a.batch
        self.attention = 2 * self.h * self.h + 2 * self.h * self.h * kv // heads  # weights
        self.rows = []

    def ns(self, operations):
        return max(1, round(operations / (self.a.tflops * self.a.mfu * 1e3)))

    def row(self, name, forward, backward, weights, params, reduce="ALLREDUCE"):
        """forward, backward: (operations, collective, bytes); weights: operations; params: of this rank."""
        words = [name, "-1"]
        for operations, collective, count in (forward, backward):
            words += [self.ns(operations), collective if count else "NONE", count]
        words += [self.ns(weights), reduce if params else "NONE", params * BF16, 1]
        self.rows.append("\t".join(str(w) for w in words))

    def activations(self):
        """Bytes of what one layer passes to the next one."""
        return self.tokens * self.h * BF16

    def tensor(self, operations, more=0):
        """All-reduced in the tensor group, of more than one rank."""
        return operations + more, "ALLREDUCE", self.activations() if self.a.tp > 1 else 0

    def matmul(self, params):
        return 2 * self.tokens * params // self.a.tp

    def add_attention(self):
        # A token attends to half of the sequence in the mean: scores, and the sum of values.
        scores = 2 * self.tokens * self.a.seq * self.h // self.a.tp
        work = self.matmul(self.attention)
        self.row("attention_layer", self.tensor(work, scores), self.tensor(work, 2 * scores), work,
                 self.attention // self.a.tp)

    def add_mlp(self):
        work = self.matmul(3 * self.h * self.f)
        self.row("mlp_layer", self.tensor(work), self.tensor(work), work, 3 * self.h * self.f // self.a.tp)

    def add_experts(self):
        count = self.activations() * self.top // self.a.tp if self.a.ep > 1 else 0
        work = self.matmul(3 * self.h * self.f) * self.top
        gate = 2 * self.tokens * self.h * self.experts // self.a.tp
        exchange = "ALLTOALL_EP"
        self.row("moe_dispatch", (gate, exchange, count), (gate, exchange, count), gate, 0)
        self.row("moe_experts", (work, exchange, count), (work, exchange, count), work,
                 self.experts // self.a.ep * 3 * self.h * self.f // self.a.tp, "ALLREDUCE_DP_EP")

    def make(self):
        a = self.a
        if a.pp == 1 and not a.no_embedding:
            self.row("embedding_layer", self.tensor(1), (1, "NONE", 0), 1, self.v * self.h // a.tp)
        for _ in range(self.layers):
            self.add_attention()
            if self.experts:
                self.add_experts()
            else:
                self.add_mlp()
        header = ("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: %d ep: %d pp: %d vpp: 1 ga: 1 all_gpus: %d "
                  "checkpoints: 0 checkpoint_initiates: 0" % (a.tp, a.ep, a.pp, a.ranks))
        if a.pp > 1:
            header += " pp_comm: %d" % self.activations()
        return "\n".join([header, str(len(self.rows))] + self.rows) + "\n"


def main():
    a = arguments(sys.argv[1:])
    if not a.shipped:
        sys.stdout.write(Step(a).make())
        return
    for name, words in SHIPPED.items():
        path = os.path.join(a.shipped, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(Step(arguments(words.split())).make())


if __name__ == "__main__":
    main()
