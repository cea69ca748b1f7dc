module aerie

go 1.19
