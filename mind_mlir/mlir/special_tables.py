"""The numbers of the formulas for the hyperbolic tangent and the error function."""

from __future__ import annotations

from mind_mlir.support.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Tables:
    """The constants of tanh and erf for a format.

    Attributes:
        tanh_end: from here on tanh is 1.
        erf_end: from here on erf is 1.
        erf_tail: erf(x) / x - 1 as a polynomial of x**2 up to `ERF_SPLIT`; coefficients, lowest power first.
        erfc_log: ln(1 - erf(x)) as a polynomial from there to ``erf_end``.
    """

    tanh_end: float
    erf_end: float
    erf_tail: tuple[float, ...]
    erfc_log: tuple[float, ...]


#: Where tanh changes from one formula to the other.
TANH_SPLIT = 0.3
#: Where erf changes from one polynomial to the other.
ERF_SPLIT = 0.92
#: By the number of bits. The tests derive all coefficients anew.
TABLES = {
    32: Tables(
        tanh_end=10.0,
        erf_end=4.0,
        erf_tail=(
            0.12837917,
            -0.37612635,
            0.112836964,
            -0.026859475,
            0.005201232,
            -0.00081450463,
            8.380231e-05,
        ),
        erfc_log=(
            -0.00019648879,
            -1.1276723,
            -0.6371879,
            -0.10392662,
            0.022224521,
            -0.0030426155,
            0.00019587582,
        ),
    ),
    64: Tables(
        tanh_end=20.0,
        erf_end=6.0,
        erf_tail=(
            0.1283791670955126,
            -0.3761263890318371,
            0.11283791670952906,
            -0.026866170644649197,
            0.005223977620006168,
            -0.0008548326660437352,
            0.00012055317561663476,
            -1.4925217521542508e-05,
            1.6453968270599079e-06,
            -1.626377547067079e-07,
            1.3984030149880732e-08,
            -8.340101818371364e-10,
        ),
        erfc_log=(
            2.2819135424933157e-08,
            -1.1283794641848002,
            -0.6366179458710042,
            -0.1027796580283479,
            0.01914765810933457,
            0.00016996375119832045,
            -0.0016338377453845622,
            0.0005110624317811858,
            5.526109412567232e-05,
            -0.00013246270315959955,
            7.626603884895037e-05,
            -2.9258659467998483e-05,
            8.537522604191846e-06,
            -1.9695710172228484e-06,
            3.623622292756876e-07,
            -5.279354116375586e-08,
            5.971186177258565e-09,
            -5.061065181816651e-10,
            3.0254096288327986e-11,
            -1.1371084218738396e-12,
            2.0200413121580028e-14,
        ),
    ),
}

#: 2**r for abs(r) <= 1/2; coefficients, lowest power first.
#: Exponentials of all numbers of a format are rounded to the same ones as precise ones are.
NARROW_EXP2 = {
    "bf16": (1.0, 0.69312143, 0.24024685, 0.055921987, 0.009573377),
    "f16": (1.0, 0.6931472, 0.24022646, 0.055503286, 0.009618489, 0.001339993, 0.00015345812),
}
