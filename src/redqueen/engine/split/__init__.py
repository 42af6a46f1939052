"""A base whose weights are split over several processes: one that fits no single device."""
