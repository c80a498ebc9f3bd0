"""Experiments on simulated users of `uncork lab`, where the true effect of a rollout is known."""
