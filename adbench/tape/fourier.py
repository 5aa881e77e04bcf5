"""placeholder"""

fft = ifft = rfft = irfft = None
