"""The imperfections of event sensors, and the sensors that can be chosen by name.

The ideal sensor has instantaneous pixels. A realistic one has pixel circuits and a read-out:

- A photoreceptor of finite bandwidth. Its corner frequency is proportional to the light (Lichtsteiner et al., JSSC
  2008; Hu et al., CVPRW 2021, "v2e"): edges come late, and later in the dark.
- Photon shot noise. Since bandwidth grows with the light, its power in log intensity does not depend on it (Graca and
  Delbruck, IISW 2021; Graca et al., CVPRW 2023). It moves the crossings, and with a rate that falls with the light it
  makes events of its own (v2e).
- A comparator that is held in reset for the refractory time: changes of the light meanwhile are forgotten.
- A leak of the reset switch, which makes ON events at a slow, regular rate (Nozaki and Delbruck, TED 2017; v2e).
- Thresholds that differ between pixels and between the polarities (Lichtsteiner et al.; Brandli et al., JSSC 2014).
- Stamps that jitter, and an arbiter that passes one event at a time: 12 million per second on a DAVIS (Brandli et al.).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.errors import SimulationError

MIN_CONTRAST = 0.01  # no pixel's threshold falls below it, whatever the spread


@dataclass(frozen=True)
class SensorSettings:
    """The imperfections of an event sensor; the defaults are those of the ideal one.

    Attributes
    ----------
    contrast_on, contrast_off : float
        Mean thresholds: the change of log intensity that causes an event.
    contrast_sigma : float
        Standard deviation of the thresholds over the pixels, for ON and OFF independently.
    refractory_s : float
        Time after an event in which a pixel is blind. (In the ECD no two events of a pixel are closer than 1.3 ms.)
    noise_rate_hz : float
        Background activity: events per second and pixel that nothing causes, of random polarity; in darkness.
    hot_pixels : int
        Number of pixels that fire at `hot_pixel_rate_hz` instead.
    hot_pixel_rate_hz : float
        Their rate in events per second. Where it is above `1 / refractory_s`, they do not rest.
    time_constant_s : float
        Of the photoreceptor, a low-pass filter of first order, in the brightest light of the scene; 0 is none.
    dark_light : float
        What dark current adds to the light, as part of the brightest: a pixel's time constant is
        `time_constant_s (1 + dark_light) / (light + dark_light)`.
    level_noise : float
        Standard deviation of the log intensity by shot noise, drawn anew for each event and each reset.
    noise_bright_share : float
        Rate of background activity in the brightest light, as part of that in darkness.
    leak_rate_hz : float
        Mean rate of ON events by leakage, per pixel.
    leak_spread : float
        Standard deviation of its natural logarithm over the pixels.
    jitter_s : float
        Standard deviation of the stamps' errors, which stay within three of it.
    readout_rate_hz : float
        Events that the read-out can pass per second; others wait, in order.
    """

    contrast_on: float = 0.3
    contrast_off: float = 0.3
    contrast_sigma: float = 0.03
    refractory_s: float = 1e-3
    noise_rate_hz: float = 0.2
    hot_pixels: int = 5
    hot_pixel_rate_hz: float = 200.0
    time_constant_s: float = 0.0
    dark_light: float = 0.07
    level_noise: float = 0.0
    noise_bright_share: float = 1.0
    leak_rate_hz: float = 0.0
    leak_spread: float = 0.0
    jitter_s: float = 0.0
    readout_rate_hz: float = np.inf

    def __post_init__(self) -> None:
        for name in ("contrast_on", "contrast_off"):
            if not MIN_CONTRAST <= getattr(self, name) < np.inf:
                raise SimulationError(
                    f"{name}={getattr(self, name)} is impossible; give a threshold of {MIN_CONTRAST} or more"
                )
        for name, value in vars(self).items():
            if name != "readout_rate_hz" and not 0 <= value < np.inf:
                raise SimulationError(f"{name}={value} is impossible; give 0 or more")
        if not self.readout_rate_hz > 0:
            raise SimulationError(f"readout_rate_hz={self.readout_rate_hz} is impossible; give a positive rate")
        if self.noise_bright_share > 1:
            raise SimulationError(f"noise_bright_share={self.noise_bright_share} is impossible; give 1 or less")

    @property
    def has_circuit(self) -> bool:
        """Whether pixels are more than instantaneous comparators."""
        return self.time_constant_s > 0 or self.level_noise > 0 or self.leak_rate_hz > 0 or self.noise_bright_share < 1


# Bandwidth, noise, leak and refractory time as in v2e, for a lit room: 0.3 ms is a corner of 530 Hz. Shot noise s makes
# a threshold of 0.3 be crossed about `530 exp(-(0.3 / 2s)^2)` times per second, for two levels differ by s sqrt(2):
# with 0.05 that is 0.07 Hz, and 1 Hz where the threshold is 0.25. Jitter: of stamps at 1 klux, Lichtsteiner et al.
DAVIS = SensorSettings(
    contrast_on=0.27,
    contrast_off=0.33,
    contrast_sigma=0.035,
    refractory_s=0.5e-3,
    noise_rate_hz=1.0,
    time_constant_s=0.3e-3,
    level_noise=0.05,
    noise_bright_share=0.25,
    leak_rate_hz=0.1,
    leak_spread=0.3,
    jitter_s=60e-6,
    readout_rate_hz=12e6,
)

# A later generation: faster pixels, read out in turns of 200 us, through a wide bus.
DVXPLORER = SensorSettings(
    contrast_on=0.25,
    contrast_off=0.28,
    contrast_sigma=0.03,
    refractory_s=0.2e-3,
    noise_rate_hz=0.5,
    time_constant_s=0.15e-3,
    level_noise=0.03,
    noise_bright_share=0.25,
    leak_rate_hz=0.05,
    leak_spread=0.3,
    jitter_s=58e-6,
    readout_rate_hz=165e6,
)

SENSORS = {"ideal": SensorSettings(), "davis": DAVIS, "dvxplorer": DVXPLORER}
