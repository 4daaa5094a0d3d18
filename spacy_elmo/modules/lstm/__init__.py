"""The LSTM: its cell, its layers, and one differentiable operation over a window of steps."""
