"""Arrays that are used again: only if shape and type are those that are asked for."""

import torch

from spacy_elmo.modules.lstm_cell import Arrays, array

LIKE = torch.zeros(1)


def test_an_array_is_used_again_if_it_fits() -> None:
    arrays: Arrays = {}
    first = array(arrays, "x", LIKE, torch.float32, 2, 3)
    assert array(arrays, "x", LIKE, torch.float32, 2, 3) is first
    assert array(arrays, "y", LIKE, torch.float32, 2, 3) is not first
    for dtype, shape in ((torch.bfloat16, (2, 3)), (torch.float32, (3, 2)), (torch.float32, (2, 3))):
        made = array(arrays, "x", LIKE, dtype, *shape)
        assert (made.dtype, made.shape, made.device) == (dtype, shape, LIKE.device)
        assert made is not first
        assert array(arrays, "x", LIKE, dtype, *shape) is made


def test_without_a_store_each_array_is_new() -> None:
    made = [array(None, "x", LIKE, torch.float32, 2) for _ in range(2)]
    assert made[0] is not made[1]
