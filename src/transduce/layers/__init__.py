"""The layers around attention, recurrent and convolutional layers, and losses."""
