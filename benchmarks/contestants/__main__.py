"""One contestant on one task, in a process of its own.

`python benchmarks/contestants FAMILY NAME TASK.npz PREDICTED.npz` fits and predicts, saves what
was predicted, and prints JSON: seconds to fit, seconds to predict and peak memory. It runs in
whichever environment holds the contestant, old Pythons included.
"""

import importlib
import json
import resource
import sys
import time

import numpy as np


def main():
    family, name, task_file, predicted_file = sys.argv[1:5]
    with np.load(task_file) as archive:
        task = dict(archive)
    fit, predict = importlib.import_module(family).CONTESTANTS[name](task)
    start = time.perf_counter()
    fit()
    fitted = time.perf_counter()
    predicted = predict()
    end = time.perf_counter()
    np.savez(predicted_file, **predicted)
    json.dump({"fit": fitted - start, "predict": end - fitted, "peak_mb": peak_mb()}, sys.stdout)


def peak_mb():
    """Of this program alone: getrusage also counts the parent, as it was when it forked."""
    try:
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
