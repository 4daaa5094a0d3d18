"""Writers of .npy files whose length is not known before the end, in bounded memory."""
