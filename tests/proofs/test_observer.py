"""The benchmark of the observer."""

from __future__ import annotations

from tests.proofs import observer


def test_the_observers_benchmark_says_what_it_found():
    measured = observer.Measured(shares=[0.004, 0.006, 0.005])
    for number, disturbance in enumerate((0.9, 1.0, 1.1), 1):
        measured.rates[False][number] = 100 * disturbance
        measured.rates[True][number] = 90 * disturbance
        measured.prices[False][number] = measured.prices[True][number] = 5.0
    assert observer.as_text(measured).splitlines() == [
        "requests/s: observed 90.00, not observed 100.00 (medians of 3 rounds); "
        "ratio 0.9000, 95 % interval 0.9000 to 0.9000",
        "CPU seconds per 1,000 requests: observed 5.00, not observed 5.00 (medians of 3 rounds); "
        "ratio 1.0000, 95 % interval 1.0000 to 1.0000",
        "the observer took 0.50 % of one core (largest 0.60 %)",
    ]
    assert measured.is_too_dear
