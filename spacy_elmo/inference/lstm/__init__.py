"""The LSTM layers of one direction over packed rows. The engine alone calls it."""
