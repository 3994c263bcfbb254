"""
Does the firing rate of a neuron fit its spikes?
================================================

The auditory receptor of a grasshopper fired 929 times in 10 seconds. Its rate is learned from
a random half of the spikes and examined with the other half, which it has not seen.
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
# Each check gives a p-value: below 0.05 it would find fault with the rate.

found = check(model, test)
print(found)
ResidualDisplay.from_check(found)
plt.show()
