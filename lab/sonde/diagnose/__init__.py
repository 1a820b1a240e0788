# SPDX-License-Identifier: Apache-2.0
"""From "it became slower" to the part and its fault: hypotheses from the system file and from files of causes, their
probabilities after each experiment, and the experiment that is worth most next.

`machine_map` lists what can be wrong, `predictions` simulates it, `likelihood` compares a prediction with
measurements, `posterior` turns that into probabilities, `next_experiment` chooses, `diagnosis` conducts.
"""
