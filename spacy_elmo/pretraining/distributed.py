"""Several processes of one run, started by torchrun, on torch.distributed.

Each process reads streams that no other one reads. Their gradients are summed, so that all make the same updates.
"""

import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from ..errors import ElmoError, OtherProcessError, ProcessError, SettingsError

TIMEOUT = timedelta(minutes=10)  # of operations that all processes reach at about the same time
PATIENCE = timedelta(days=1)  # while the first process prepares a text, evaluates or writes


def environment() -> tuple[int, int, int]:
    """Return the rank of this process, from 0, the number of processes, and the rank among those of its machine.

    Raises ProcessError.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return 0, 1, 0
    names = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_PORT", "MASTER_ADDR")
    given = {"LOCAL_RANK": "0"} | {name: os.environ[name] for name in names if name in os.environ}
    try:
        size, rank, own, _ = (int(given[name]) for name in names[:4])
        fits = max(rank, own) < size and bool(given["MASTER_ADDR"])
    except (KeyError, ValueError):
        fits = False
    if not fits:
        told = ", ".join(f"{name} is {repr(given[name]) if name in given else 'not set'}" for name in names)
        raise ProcessError(
            f"these environment variables can't be used: {told}. Expected them as torchrun sets them: start the run "
            "with torchrun, or unset WORLD_SIZE to train in one process."
        )
    return rank, size, own


class Group:
    """The processes of a run. A single process needs no torch.distributed.

    All must call its methods, in the same order. They raise ProcessError if another process has died.

    device: where tensors must be for the messages of an update. patient: the processes with a longer timeout.
    """

    def __init__(
        self, rank: int = 0, size: int = 1, device: torch.device | None = None, patient: dist.ProcessGroup | None = None
    ) -> None:
        self.rank, self.size, self._patient = rank, size, patient
        self.device = device or torch.device("cpu")
        self.first = rank == 0  # whether this process writes the files

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the sum of each tensor over all processes, by one message. All are of one type and on `device`."""
        if self.size == 1:
            return list(tensors)
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with _errors_of_others():
            dist.all_reduce(flat)
        return [part.view(tensor.shape) for part, tensor in zip(flat.split([t.numel() for t in tensors]), tensors)]

    def union(self, numbers: Tensor) -> Tensor:
        """Return the distinct numbers of all processes, sorted, *Shape:* (distinct,), int64."""
        distinct: Tensor = torch.unique(numbers)
        if self.size == 1:
            return distinct
        longest = self.largest(len(distinct))
        # all messages must have one size; a repeated number changes nothing
        padded = torch.cat([distinct, distinct[:1].expand(longest - len(distinct))]).to(self.device)
        united: Tensor = torch.unique(torch.cat(self._gather(padded)))
        return united.to(numbers.device)

    def concatenate(self, tensor: Tensor, dim: int) -> Tensor:
        """Return the tensors of all processes, of one type and shape, concatenated by their ranks."""
        if self.size == 1:
            return tensor
        return torch.cat([part.to(tensor.device) for part in self._gather(tensor.contiguous().to(self.device))], dim)

    def largest(self, number: int, patient: dist.ProcessGroup | None = None) -> int:
        if self.size == 1:
            return number
        value = torch.tensor([number], device=self.device if patient is None else "cpu")
        with _errors_of_others():
            dist.all_reduce(value, dist.ReduceOp.MAX, group=patient)
        return int(value)

    def from_first(self, number: float) -> float:
        """Return the number of the first process, which may be hours late."""
        if self.size == 1:
            return number
        value = torch.tensor([number], dtype=torch.float64)
        with _errors_of_others():
            dist.broadcast(value, 0, group=self._patient)
        return value.item()

    @torch.no_grad()
    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite tensors with those of the first process."""
        if self.size > 1:
            with _errors_of_others():
                for tensor in tensors:
                    dist.broadcast(tensor, 0)

    def check_alike(self, value: object, error: ElmoError) -> None:
        """Raise an error in each process whose value, by its repr, differs from that of the first process."""
        checksum = zlib.crc32(repr(value).encode())
        alike = self.from_first(checksum) == checksum
        with self.together():
            if not alike:
                raise error

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all processes reach the end of the block, or none continue after it. They wait up to a day.

        The error of the process of the lowest rank is raised there, and OtherProcessError in the others.
        """
        failed: Exception | None = None
        try:
            yield
        except Exception as error:
            if self.size == 1 or isinstance(error, ProcessError):  # nobody else waits, or the others can't be reached
                raise
            failed = error
        if self.size == 1:
            return
        try:
            highest = self.largest(0 if failed is None else self.size - self.rank, self._patient)
        except ProcessError:
            if failed is None:
                raise
            raise failed from None
        reporter = self.size - highest
        if failed is not None and reporter == self.rank:
            raise failed
        if highest:
            raise OtherProcessError(
                f"process {reporter} of this run has ended with an error, which it prints itself."
            ) from failed

    def _gather(self, tensor: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        with _errors_of_others():
            dist.all_gather(parts, tensor)
        return parts


@contextmanager
def _errors_of_others() -> Iterator[None]:
    """Turn what gloo and NCCL raise into ProcessError."""
    try:
        yield
    except RuntimeError as error:
        # the message without the location in their source code before it, and the advice after it
        reason = re.sub(r"^\[\S*\] ", "", str(error).strip().split("\n")[0]).split(". ")[0]
        raise ProcessError(
            f"another process of this run has died, or can't be reached ({reason}). Start the run again, without "
            "--restart: it goes on from the last checkpoint, with any number of processes that divides "
            "training.streams."
        ) from error


@contextmanager
def processes(device: str) -> Iterator[Group]:
    """Yield the group of processes that torchrun started; without torchrun, a group of this process alone."""
    (_, size, gpu), where = environment(), torch.device(device)
    if device == "cuda":
        if torch.cuda.device_count() <= gpu:
            raise SettingsError(
                f'training.device is "cuda", but torch finds {torch.cuda.device_count()} GPUs here. Expected at '
                f'least {gpu + 1}: set it to "cpu", or install a build of torch for this machine\'s GPU.'
            )
        where = torch.device(device, gpu)
        torch.cuda.set_device(where)
    if size == 1:
        yield Group(device=where)
        return
    with _errors_of_others():
        dist.init_process_group("nccl" if device == "cuda" else "gloo", timeout=TIMEOUT)
    try:
        with _errors_of_others():
            patient = dist.new_group(timeout=PATIENCE, backend="gloo")
        yield Group(dist.get_rank(), dist.get_world_size(), where, patient)
    except ProcessError:  # destroy_process_group would wait for a dead process
        raise
    except BaseException:
        dist.destroy_process_group()
        raise
    dist.destroy_process_group()
