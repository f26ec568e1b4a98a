"""What a visitor works on: scenarios, their plans, and where both are kept between visits."""
