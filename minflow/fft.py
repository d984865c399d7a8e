"""Discrete Fourier transforms (`flow.fft`), implemented in `core/functions/fourier.py`."""

from .core.functions.fourier import (
    fft as fft,
    fft2 as fft2,
    fftfreq as fftfreq,
    fftn as fftn,
    fftshift as fftshift,
    hfft as hfft,
    hfft2 as hfft2,
    hfftn as hfftn,
    ifft as ifft,
    ifft2 as ifft2,
    ifftn as ifftn,
    ifftshift as ifftshift,
    ihfft as ihfft,
    ihfft2 as ihfft2,
    ihfftn as ihfftn,
    irfft as irfft,
    irfft2 as irfft2,
    irfftn as irfftn,
    rfft as rfft,
    rfft2 as rfft2,
    rfftfreq as rfftfreq,
    rfftn as rfftn,
)
from .core.messages.suggestions import name_hints as _name_hints

__getattr__ = _name_hints("flow.fft", globals())
