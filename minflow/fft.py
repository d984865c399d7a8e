"""Discrete Fourier transforms (`flow.fft`), implemented in `core/functions/fourier.py`."""

from .core.functions.fourier import (
    fft as fft,
    ifft as ifft,
    rfft as rfft,
    irfft as irfft,
    hfft as hfft,
    ihfft as ihfft,
    fft2 as fft2,
    ifft2 as ifft2,
    rfft2 as rfft2,
    irfft2 as irfft2,
    hfft2 as hfft2,
    ihfft2 as ihfft2,
    fftn as fftn,
    ifftn as ifftn,
    rfftn as rfftn,
    irfftn as irfftn,
    hfftn as hfftn,
    ihfftn as ihfftn,
    fftfreq as fftfreq,
    rfftfreq as rfftfreq,
    fftshift as fftshift,
    ifftshift as ifftshift,
)
from .core.messages.suggestions import name_hints as _name_hints

__getattr__ = _name_hints("flow.fft", globals())
