"""
Goodness of fit: does the estimated firing rate describe the spikes?
====================================================================

The auditory receptor of a grasshopper fired 929 times in 10 seconds. Its rate is learned from
a random half of the spikes and tested on the other half.
"""

import matplotlib.pyplot as plt

from hplus import Intensity, datasets
from hplus.display import IntensityCurveDisplay, ResidualDisplay
from hplus.evaluation import check, thin

spikes = datasets.spikes()
train, test = thin(spikes.X, 0.5, random_state=0)
model = Intensity(spikes.window).fit(train)
IntensityCurveDisplay.from_estimator(model, train)

# %%
# Each test gives a p-value; one below 0.05 would indicate that the rate does not fit.

found = check(model, test)
print(found)
ResidualDisplay.from_check(found)
plt.show()
