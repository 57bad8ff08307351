from rooftile._command import main

main()
