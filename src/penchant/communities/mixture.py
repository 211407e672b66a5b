"""Communities found by a deterministic search: grow from one, merge, delete, learn, settle."""


import numpy as np

from penchant.communities.moves import delete, merge, split
from penchant.communities.partition import everybody_together, learn, settle

ROUNDS = 6
ROUND_SWEEPS = 6
SETTLE_SWEEPS = 40


def find(crowd, trace=None, learn_theta=True):
    trace = trace if trace is not None else []

    def note(what, p):
        trace.append((what, p.n_communities, p.objective))

    p = everybody_together(crowd, crowd.hyper.theta)
    note("start", p)
    if learn_theta:
        p = learn(p)
        note("learn", p)
    tried = set()
    for rnd in range(ROUNDS):
        grown = False
        for taste in p.tastes:
            c = [i for i, t in enumerate(p.tastes) if t is taste]
            if not c:
                continue
            q = split(p, c[0])
            if q is not None:
                p = q
                grown = True
                note("split", p)
        if grown:
            p = settle(p, ROUND_SWEEPS, 1.0)
            note("sweep", p)
        while p.n_communities > 1 and (q := merge(p)) is not None:
            p = q
            note("merge", p)
        if not grown:
            break
        if learn_theta and rnd in (0, 2):
            p = learn(p)
            note("learn", p)
    p = settle(p, SETTLE_SWEEPS, 0.1)
    note("settle", p)
    if learn_theta and p.n_communities > 1:
        p = learn(p)
        note("learn", p)
    while p.n_communities > 1 and (q := merge(p)) is not None:
        p = q
        note("merge", p)
    if p.n_communities > 1:
        for c in np.argsort(p.sizes):
            if p.n_communities > 1 and (q := delete(p, int(c))) is not None:
                p = q
                note("delete", p)
                break
    p = settle(p, SETTLE_SWEEPS, 0.01)
    note("settle", p)
    return p
