"""Signals become requests."""

import os
import signal
import threading

import pytest

from spacy_elmo.pretraining import checkpoint as stopping
from spacy_elmo.pretraining.checkpoint import Stopped, asked_to_stop

NUMBERS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_signal_is_a_request(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in NUMBERS]
    with asked_to_stop() as stop:
        assert stop.number is None
        signal.raise_signal(number)
        assert stop.number == number
    assert [signal.getsignal(each) for each in NUMBERS] == before


@pytest.mark.parametrize("first", NUMBERS)
@pytest.mark.parametrize("second", NUMBERS)
def test_a_second_one_interrupts(
    monkeypatch: pytest.MonkeyPatch, first: signal.Signals, second: signal.Signals
) -> None:
    monkeypatch.setattr(stopping, "REPEATED_SECONDS", -1.0)
    before = [signal.getsignal(each) for each in NUMBERS]
    with asked_to_stop() as stop:
        signal.raise_signal(first)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)
    assert stop.number == first
    assert [signal.getsignal(each) for each in NUMBERS] == before


def test_one_that_comes_twice_at_once_is_one_request() -> None:
    with asked_to_stop() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.number == signal.SIGTERM


def test_a_signal_that_was_ignored_before_is_a_request_too() -> None:
    """Shells start background commands with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with asked_to_stop() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.number == signal.SIGINT
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_terminal_that_is_closed_is_a_request_but_not_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with asked_to_stop() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.number == signal.SIGHUP
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with asked_to_stop() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.number is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back_after_an_error() -> None:
    before = [signal.getsignal(each) for each in NUMBERS]
    with pytest.raises(KeyError), asked_to_stop():
        raise KeyError
    assert [signal.getsignal(each) for each in NUMBERS] == before


def test_other_threads_change_nothing() -> None:
    before, numbers = [signal.getsignal(each) for each in NUMBERS], []

    def run() -> None:
        with asked_to_stop() as stop:
            numbers.append(stop.number)
            assert [signal.getsignal(each) for each in NUMBERS] == before

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert numbers == [None]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_block_that_the_first_signal_interrupts(number: signal.Signals) -> None:
    with asked_to_stop() as stop:
        with pytest.raises(Stopped), stop.at_once():
            signal.raise_signal(number)
        assert stop.number == number
        with pytest.raises(Stopped), stop.at_once():
            pytest.fail("it was not to start")


def test_after_such_a_block_a_signal_is_a_request_again() -> None:
    with asked_to_stop() as stop:
        with stop.at_once():
            pass
        signal.raise_signal(signal.SIGTERM)
        assert stop.number == signal.SIGTERM
