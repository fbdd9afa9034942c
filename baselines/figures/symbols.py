"""The paper's symbol of each setting and of each quantity."""

SYMBOLS = {
    'client_learning_rate': r'$\gamma$',
    'server_learning_rate': r'$\eta$',
    'theta': r'$\Theta$',
    'server_optimizer': 'server',
}
# Columns of metrics.csv that can be drawn against rounds.
QUANTITIES = {
    'population_loss': r'population loss $f(x_t)$',
    'example_weighted_loss': 'loss over all examples',
    'loss_before_training': r'loss before training $f_t$',
    'update_norm': r'norm of the update $\|q_t\|$',
    'test_loss': 'test loss',
    'test_accuracy': 'test accuracy',
}
# Algorithms with a horizon, in the order in which paper 2 lists them.
ALGORITHMS = {
    'minibatch_sgd': 'Minibatch-SGD',
    'fed_avg': 'FedAvg',
    'fed_paq': 'FedPAQ',
    'fed_com': 'FedCOM',
    'ceal': 'CEAL',
}
