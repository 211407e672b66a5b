import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from penchant.numerics import threads


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_small_matrices_are_worked_on_by_one_thread_and_large_ones_by_all():
    with threadpool_limits(2, user_api="blas"):
        with threads.threads_for(threads.ONE_THREAD_SIZE):
            assert blas_threads() == {1}
        assert blas_threads() == {2}
        with threads.threads_for(threads.ONE_THREAD_SIZE + 1):
            assert blas_threads() == {2}


def test_threads_come_back_after_an_error():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ValueError, match="inside"), threads.threads_for(1):
            raise ValueError("inside")
        assert blas_threads() == {2}
