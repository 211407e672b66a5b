"""The contract on a card: python tests/gpu/run_contract.py [device].

Needs torch, NumPy, SciPy and scikit-learn, and no pytest. The exit code is 1 if a check fails.
"""

import sys
import traceback
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))


def main():
    import checks
    import model_checks
    import user_checks

    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    failed = 0
    print(f"| check on {device} | seconds | |\n| --- | --- | --- |", flush=True)
    every = checks.CHECKS | user_checks.CHECKS | model_checks.CHECKS
    for name, check in every.items():
        begin = perf_counter()
        try:
            check(device)
            outcome = "ok"
        except Exception:
            outcome, failed = traceback.format_exc(), failed + 1
        print(f"| {name} | {perf_counter() - begin:.2f} | {outcome} |", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
