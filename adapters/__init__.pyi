from dpcal.adapters import (
    flower as flower,
    opacus as opacus,
    optax as optax,
    stepwise as stepwise,
    torch as torch,
)
